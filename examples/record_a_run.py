"""Record one run of a LocalCluster and look into the recording."""

from distributed import Client, LocalCluster

import daskscope


def square(x: int) -> int:
    return x * x


if __name__ == "__main__":
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
        daskscope.record("squares.daskscope"),
    ):
        print("sum of squares:", sum(client.gather(client.map(square, range(1000)))))

    recording = daskscope.open_recording("squares.daskscope")
    tasks = recording["tasks"]
    print("tasks recorded:", tasks.rows)
    print("seconds of compute:", (tasks["stop_us"] - tasks["start_us"]).sum() / 1e6)
