"""Whether a path lies on a network file system, where SQLite's locks and shared memory do not work."""

from __future__ import annotations

from pathlib import Path

NETWORK = {
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "beegfs", "ceph", "afs", "9p", "glusterfs", "fuse.sshfs",
    "fuse.glusterfs", "fuse.s3fs", "fuse.gcsfuse", "fuse.ceph", "pvfs2", "orangefs", "panfs", "wekafs",
}  # fmt: skip
MOUNTS = Path("/proc/mounts")


def network_file_system(path: Path, mounts: Path = MOUNTS) -> str:
    """The type of the network file system ``path`` lies on; empty where it is local, or where nobody can tell."""
    try:
        lines = mounts.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    absolute = path.resolve()
    best, kind = -1, ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(fields[1].encode().decode("unicode_escape"))
        # The last mount on a directory is the one that is seen.
        if (absolute == point or point in absolute.parents) and len(point.parts) >= best:
            best, kind = len(point.parts), fields[2]
    return kind if kind in NETWORK else ""
