"""One round of scheduling: which of the waiting pods the node takes, and the reason of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from trainer.kube.objects import Object
from trainer_devcluster.scheduler import texts
from trainer_devcluster.scheduler.candidate import KUBERNETES, VOLCANO, Candidate, Gang
from trainer_devcluster.scheduler.node_fit import FitFailure, Room


def least_of(spec: Object) -> int:
    """How many pods a PodGroup wants to be scheduled together; 0: they are scheduled one by one."""
    policy = spec.get("schedulingPolicy") or {"gang": {"minCount": spec.get("minMember")}}
    return max(1, int(policy["gang"].get("minCount") or 1)) if "gang" in policy else 0


@dataclass(frozen=True, slots=True)
class GangState:
    """What exists of a gang."""

    spec: Object | None
    """Of its PodGroup; None: there is no PodGroup."""
    members: int = 0
    """Pods that name the PodGroup, whatever has become of them."""
    assigned: Sequence[Candidate] = ()
    """Those of them that take room on the node."""
    succeeded: int = 0
    """Those that have succeeded, which count as scheduled."""

    @property
    def least(self) -> int:
        """How many have to be scheduled together."""
        return least_of(self.spec or {})

    @property
    def goes_as_one(self) -> bool:
        """Whether all of its pods are preempted when one is."""
        return "all" in ((self.spec or {}).get("disruptionMode") or {})


@dataclass(slots=True)
class Placement:
    """The outcome of a round.

    Args:
        room: of the node; what is placed is taken from it.
        states: looks up what exists of a gang.
        preempts: whether gangs of Kubernetes take the room of others (feature gate WorkloadAwarePreemption).
    """

    room: Room
    states: Callable[[Gang], GangState]
    preempts: bool = False
    bound: list[Candidate] = field(default_factory=list)
    """The candidates that get the node, in their order."""
    held: dict[Candidate, str] = field(default_factory=dict)
    """The candidates that wait, each with the reason."""
    victims: list[list[Candidate]] = field(default_factory=list)
    """The pods that have to go for gangs of a higher priority; what is one list goes together."""

    def place(self, waiting: Iterable[Candidate]) -> None:
        """Give every pod its turn; that of a gang is that of its first pod."""
        turns = sorted(waiting, key=lambda candidate: candidate.rank)
        gangs: defaultdict[Gang, list[Candidate]] = defaultdict(list)
        for candidate in turns:
            if candidate.gang is not None:
                gangs[candidate.gang].append(candidate)
        for candidate in turns:
            if candidate.gang is None:
                self._place_one(candidate)
            elif candidate.gang in gangs:
                self._place_gang(candidate.gang, gangs.pop(candidate.gang))

    def _place_one(self, candidate: Candidate) -> None:
        refusal = self.room.refusal(candidate)
        if refusal is None:
            self.room.take(candidate)
            self.bound.append(candidate)
        else:
            self.held[candidate] = texts.no_fit(candidate, refusal, self.room)

    def _place_gang(self, gang: Gang, members: list[Candidate]) -> None:
        state = self.states(gang)
        if gang.scheduler == KUBERNETES.name and (state.spec is None or state.members < state.least):
            return  # kube-scheduler says nothing before the gang can be tried
        if state.spec is None:
            self._hold_all(members, lambda _: texts.no_pod_group(gang))
            return
        if gang.scheduler == KUBERNETES.name and (problem := texts.mixed(members, state.spec.get("priority") or 0)):
            self._hold_all(members, lambda _: problem)
            return
        gap = self.room.gap(state.spec.get("minResources") or {}, state.assigned)
        if state.members < state.least or gap:
            self._hold_all(members, lambda member: _unready(gang, state, member, len(members), gap))
            return
        fitting, misfits = self._try(members)
        if len(state.assigned) + state.succeeded + len(fitting) >= state.least:
            self.bound += fitting
            for member, refusal in misfits:
                self.held[member] = texts.no_fit(member, refusal, self.room)
            return
        self._give_back(fitting)
        if not self._preempt(gang, state, members):
            self._wait(gang, state, fitting, misfits)

    def _preempt(self, gang: Gang, state: GangState, members: list[Candidate]) -> bool:
        """Have pods of a lower priority make room for a gang, and keep that for it; False if it would not be enough."""
        constrained = bool(state.spec and state.spec.get("schedulingConstraints"))
        if gang.scheduler != KUBERNETES.name or not self.preempts or constrained or members[0].never_preempts:
            return False
        units = self._units_below(members[0].priority)
        for unit in units:
            self._give_back(unit)
        fitting, misfits = self._try(members)
        if len(state.assigned) + state.succeeded + len(fitting) < state.least:
            self._give_back(fitting)
            self._take(*units)
            return False
        victims = [unit for unit in units if not self._spares(unit)]
        self._take(*victims)
        self.victims += [unit for unit in victims if unit not in self.victims]
        self._hold_all(fitting, lambda _: texts.PREEMPTING)
        self.held |= {member: texts.no_fit(member, refusal, self.room) for member, refusal in misfits}
        return True

    def _units_below(self, priority: int) -> list[list[Candidate]]:
        """The pods of a lower priority, with each those that go with it; who is to stay rather comes first."""
        units: defaultdict[Gang | Candidate, list[Candidate]] = defaultdict(list)
        for pod in self.room.placed:
            units[pod.gang if pod.gang is not None and self.states(pod.gang).goes_as_one else pod].append(pod)
        return sorted(
            (unit for unit in units.values() if unit[0].priority < priority),
            key=lambda unit: (unit[0].is_terminating, unit[0].rank),
        )

    def _spares(self, unit: list[Candidate]) -> bool:
        """Take the pods of a unit into the room again if all of them fit."""
        for index, pod in enumerate(unit):
            if self.room.shortage(pod) is not None:
                self._give_back(unit[:index])
                return False
            self.room.take(pod)
        return True

    def _take(self, *units: list[Candidate]) -> None:
        for unit in units:
            for pod in unit:
                self.room.take(pod)

    def _give_back(self, pods: Iterable[Candidate]) -> None:
        for pod in pods:
            self.room.give_back(pod)

    def _try(self, members: list[Candidate]) -> tuple[list[Candidate], list[tuple[Candidate, FitFailure]]]:
        fitting, misfits = [], []
        for member in members:
            refusal = self.room.refusal(member)
            if refusal is None:
                self.room.take(member)
                fitting.append(member)
            else:
                misfits.append((member, refusal))
        return fitting, misfits

    def _wait(
        self, gang: Gang, state: GangState, fitting: list[Candidate], misfits: list[tuple[Candidate, FitFailure]]
    ) -> None:
        if gang.scheduler == VOLCANO.name:
            pending = len(fitting) + len(misfits)
            text = texts.gang_not_ready(pending, state.members, state.least, misfits=misfits)
            self._hold_all([*fitting, *(member for member, _ in misfits)], lambda _: text)
            return
        for member, refusal in misfits:
            self.held[member] = texts.no_fit(member, refusal, self.room)
        if gang.scheduler == KUBERNETES.name:
            text = texts.gang_infeasible(state.least, len(state.assigned) + state.succeeded + len(fitting))
            self._hold_all(fitting, lambda _: text)
        elif misfits:
            self._hold_all(fitting, lambda _: texts.rejected_for(gang, misfits[0][0]))

    def _hold_all(self, members: Iterable[Candidate], text: Callable[[Candidate], str]) -> None:
        self.held |= {member: text(member) for member in members}


def _unready(gang: Gang, state: GangState, member: Candidate, pending: int, gap: str) -> str:
    if gang.scheduler == VOLCANO.name:
        return texts.gang_not_ready(pending, state.members, state.least)
    if state.members < state.least:
        return texts.too_few_siblings(member, state.members, state.least)
    return texts.resource_gap(member, gap)
