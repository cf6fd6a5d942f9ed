"""Build one document in a process of its own, with a limit on its memory.

A run of five million tasks takes gigabytes. In the server's own process, whatever exceeds the memory of the machine would end the
server, and with it the ingest of every other cluster. The server writes a job to standard input and reads the result from standard
output. The process ends if the server does: its standard input is then closed.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import closing
from pathlib import Path

import msgspec

from daskscope.server.build_job import Job, Result

#: Added to the process's priority number: batches of other clusters go first.
NICE = 10


def build(job: Job) -> Result:
    """Build and store the document of a job."""
    from daskscope.server.rendering import Subject, open_archive, render_subject, render_upload, store_document

    with closing(open_archive(job.storage)) as archive:
        is_complete, cluster = True, ""
        if job.recording:
            document, cluster = render_upload(Path(job.recording), job.title)
        else:
            subject = Subject(job.account, job.run, job.title, job.computation)
            document, is_complete = render_subject(archive, subject)
        path = store_document(archive, job.account, document)
        return Result("built", path, document.nbytes, is_complete, cluster)


def attempt(job: Job) -> Result:
    """Build the document of a job, and turn an error into a result."""
    from daskscope.errors import DaskscopeError
    from daskscope.server.rendering import NoSuchComputation
    from daskscope.storage.database import DatabaseError, StorageError, detail_of

    try:
        return build(job)
    except MemoryError:
        return Result("memory")
    except NoSuchComputation:
        return Result("no computation")
    except (DatabaseError, OSError) as error:
        return Result("storage", detail=detail_of(error))
    except StorageError as error:
        return Result("refused" if _is_invalid(error) else "storage", detail=str(error))
    except DaskscopeError as error:
        return Result("refused", detail=str(error))
    except Exception as error:  # noqa: BLE001 (the server logs it)
        return Result("memory" if _is_about_memory(error) else "failed", detail=repr(error))


def _is_about_memory(error: Exception) -> bool:
    """Return whether an error means that there is no memory: threads and libraries that cannot start say so only in words."""
    return any(part in str(error) for part in ("can't start new thread", "Cannot allocate memory"))


def _is_invalid(error: Exception) -> bool:
    from daskscope.storage.database import InvalidInput

    return isinstance(error, InvalidInput)


def limit_memory(nbytes: int) -> None:
    """Limit the memory of this process.

    Not its address space: pyarrow reserves gigabytes of that and uses little. Linux counts private writable pages as data; other
    systems have no such limit.
    """
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (nbytes, nbytes))


def _end_with_server() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _use_all_cores() -> None:
    """Let pyarrow decode as many columns at a time as there are cores; ``OMP_NUM_THREADS`` would limit it to one."""
    import pyarrow as pa

    pa.set_cpu_count(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1)


def main() -> None:
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    threading.Thread(target=_end_with_server, daemon=True).start()
    if os.name == "posix":
        os.nice(NICE)
    limit_memory(job.memory_nbytes)
    # pyarrow imports pandas if there is one, which takes 100 MB, and does not need it here.
    sys.modules["pandas"] = None  # type: ignore[assignment]
    _use_all_cores()
    result = attempt(job)
    sys.stdout.buffer.write(msgspec.json.encode(result))
    sys.stdout.buffer.flush()
    # The thread that reads standard input would keep the interpreter from ending.
    os._exit(0)


if __name__ == "__main__":
    main()
