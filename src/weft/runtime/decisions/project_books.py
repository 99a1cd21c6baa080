"""The books of projects, each with what was decided elsewhere in its repository."""

from __future__ import annotations

from functools import partial

from weft.config.paths import WeftPaths
from weft.config.project_ids import ProjectIds, RelatedProject, repository_place
from weft.runtime.decisions.decision_book import DecisionBook, RelatedSource, shared_book
from weft.runtime.services import Services
from weft.store import Store
from weft.workspace.disk_threads import DiskThreads


def project_book(
    services: Services, store: Store, project_id: str, project_path: str
) -> DecisionBook:
    """The book of a project in a store, which its sessions share."""
    related = _related(services, store, project_path)
    return shared_book(services.decisions.books, store, project_id, services.clock, related)


async def whole_book(
    services: Services, store: Store, project_id: str, project_path: str
) -> DecisionBook:
    """A book with every attempt there ever was, read to the end: the one that sessions share where
    that has them all, and one for this caller where it has not.
    """
    shared = project_book(services, store, project_id, project_path)
    await shared.refresh()
    if shared.graph.is_whole:
        return shared
    related = _related(services, store, project_path)
    whole = DecisionBook(store, project_id, services.clock, related)
    await whole.refresh()
    return whole


def _related(services: Services, store: Store, project_path: str) -> RelatedSource | None:
    # Projects that nothing is kept of have no ids that others could be found by.
    return partial(related_projects, services.places, project_path) if store.is_lasting else None


async def related_projects(
    places: WeftPaths, project_path: str
) -> tuple[str, list[RelatedProject]]:
    """The folder of a project in its repository, and the other projects of that."""

    def look() -> tuple[str, list[RelatedProject]]:
        ids = ProjectIds(places.projects)
        return repository_place(project_path).inside, ids.related(project_path)

    return await DiskThreads.of(project_path).run(look)
