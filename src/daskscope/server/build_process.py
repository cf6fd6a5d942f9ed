"""Build one document in a process of its own, with a limit on its memory.

A run of five million tasks takes gigabytes. In the server's own process, whatever exceeds the memory of the machine would end the
server, and with it the ingest of every other cluster.
"""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path

from daskscope.server.build_job import Job, Result
from daskscope.server.child_main import run_job


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


def _use_cores() -> None:
    """Let pyarrow decode several columns at a time; ``OMP_NUM_THREADS`` would limit it to one."""
    import pyarrow as pa

    from daskscope.report.cores import usable_cores

    pa.set_cpu_count(usable_cores())


def main(job: Job) -> Result:
    # pyarrow imports pandas if there is one, which takes 100 MB, and does not need it here.
    sys.modules["pandas"] = None  # type: ignore[assignment]
    _use_cores()
    return attempt(job)


if __name__ == "__main__":
    run_job(Job, main, lambda job: job.memory_nbytes)
