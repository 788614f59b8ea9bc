"""A controller of a kind of its own: a folder for every Workspace, which is removed before the Workspace goes."""

import shutil
from pathlib import Path

from anyio.to_thread import run_sync

from trainer import kube
from trainer.kube.clock import timestamp
from trainer.kube.objects import is_being_deleted, key_of, metadata_of, resource_version_of, set_condition

WORKSPACES = kube.Resource("example.com", "v1", "workspaces", "Workspace")
FINALIZER = "example.com/folder"


class Workspaces:
    def __init__(self, manager: kube.Manager, root: Path) -> None:
        self.client, self.clock, self.root = manager.client, manager.clock, root
        self.workspaces = manager.informer(WORKSPACES).lister
        kube.Controller("workspaces", manager, self.reconcile).reconciles(WORKSPACES)

    async def reconcile(self, key: kube.ObjectKey) -> kube.Result | None:
        workspace = self.workspaces.get(key)
        if workspace is None:
            return None
        folder = self.root / key.namespace / key.name
        finalizers = metadata_of(workspace).get("finalizers") or []
        if is_being_deleted(workspace):
            if FINALIZER in finalizers:
                await run_sync(remove, folder)
                await self.set_finalizers(workspace, [each for each in finalizers if each != FINALIZER])
            return None
        if FINALIZER not in finalizers:  # before there is anything to remove
            workspace = await self.set_finalizers(workspace, [*finalizers, FINALIZER])
        try:
            await run_sync(write, folder, workspace["spec"]["notice"])
        except OSError as error:
            await self.set_ready(workspace, "False", "FolderFailed", f"{folder}: {error.strerror}")
            return kube.Result(requeue_after=60)
        await self.set_ready(workspace, "True", "FolderWritten", f"the folder is {folder}")
        return None

    async def set_finalizers(self, workspace: kube.Object, finalizers: list[str]) -> kube.Object:
        metadata = {"finalizers": finalizers, "resourceVersion": resource_version_of(workspace)}
        namespace, name = key_of(workspace)
        return await self.client.patch(WORKSPACES, name, {"metadata": metadata}, namespace)

    async def set_ready(self, workspace: kube.Object, status: str, reason: str, message: str) -> None:
        generation = metadata_of(workspace)["generation"]
        ready = {"type": "Ready", "status": status, "reason": reason, "message": message}
        before = (workspace.get("status") or {}).get("conditions") or []
        after = set_condition(before, ready | {"observedGeneration": generation}, timestamp(self.clock.now()))
        if after != before:
            namespace, name = key_of(workspace)
            change = {"status": {"observedGeneration": generation, "conditions": after}}
            await self.client.patch(WORKSPACES, name, change, namespace, subresource="status")


def write(folder: Path, notice: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "NOTICE").write_text(f"{notice}\n")


def remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)


async def main() -> int:
    kube.configure_logging()
    async with kube.connect() as client:
        manager = kube.Manager(client)
        Workspaces(manager, Path.cwd() / "workspaces")
        await manager.run()
    return 0


if __name__ == "__main__":
    raise SystemExit(kube.run_until_signal(main, second_kills=True))
