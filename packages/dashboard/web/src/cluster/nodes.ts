// The nodes of the cluster: groups of equal ones, and which of them are shown.

import { id } from "../list/filters";
import type { Member } from "../model";
import { searched } from "../search";

export interface NodeGroup {
  key: string;
  /** What its nodes have: the products of their devices, or no GPUs. */
  title: string;
  instanceType: string;
  members: Member[];
}

/** What a list has in it, in order: groups, and below those that are open their nodes. */
export type Item = { group: NodeGroup; member?: undefined } | { member: Member; group?: undefined };

export const SHOWS = ["all", "free", "trouble"] as const;
export type Show = (typeof SHOWS)[number];

/** So many nodes are shown without having to open groups. */
const FEW = 20;

/** `node-2` comes before `node-10`. */
const NATURAL = new Intl.Collator("en", { numeric: true });

const KNOWN = /^(?:nvidia|amd)[- ]/i;

/** A product without what is the same for all of a vendor. */
export function product(name: string): string {
  return name.replace(KNOWN, "").replaceAll("-", " ");
}

/** The devices of a node in words: `8 × H100 80GB HBM3`. */
export function hardware({ devices }: Member): string {
  return devices.map((device) => `${device.total} × ${product(device.product) || device.resource}`).join(", ") || "No GPUs";
}

/** Equal nodes together, those with most devices first. */
export function groups(members: readonly Member[]): NodeGroup[] {
  const found = new Map<string, NodeGroup>();
  for (const member of members) {
    const title = hardware(member);
    const key = `${title}|${member.instanceType}|${Math.round(member.cpu.total)}`;
    const group = found.get(key) ?? { key, title, instanceType: member.instanceType, members: [] };
    group.members.push(member);
    found.set(key, group);
  }
  for (const group of found.values()) group.members.sort((a, b) => NATURAL.compare(a.name, b.name));
  return [...found.values()].sort((a, b) => sum(b.members, devices) - sum(a.members, devices) || (a.title < b.title ? -1 : 1));
}

export function devices(member: Member): number {
  return member.devices.reduce((count, { total }) => count + total, 0);
}

/** GPUs that pods have requested; null where that is not known. */
export function requested({ devices }: Member): number | null {
  return devices.some((device) => device.requested === null) ? null : devices.reduce((count, device) => count + (device.requested ?? 0), 0);
}

/** GPUs that a pod could have now. */
export function free(member: Member): number {
  return member.devices.reduce((count, device) => count + (device.free ?? 0), 0);
}

function sum(members: readonly Member[], value: (member: Member) => number): number {
  return members.reduce((total, member) => total + value(member), 0);
}

/** A line about a group: GPUs of all its nodes, and how many nodes are in trouble. */
export function summary({ members }: NodeGroup): string {
  const all = sum(members, devices);
  const known = members.every((member) => requested(member) !== null);
  const troubled = members.filter(({ troubles }) => troubles.length > 0).length;
  return [
    all > 0 && known && `${sum(members, (member) => requested(member) ?? 0)} of ${all} GPUs requested`,
    all > 0 && known && `${sum(members, free)} free`,
    all > 0 && !known && `${all} GPUs`,
    troubled > 0 && `${troubled} with problems`,
  ]
    .filter(Boolean)
    .join(", ");
}

/** Whether a node is one of those that are asked for. */
function isShown(member: Member, show: Show): boolean {
  if (show === "free") return free(member) > 0;
  return show === "all" || member.troubles.length > 0;
}

export function counts(members: readonly Member[]): Record<Show, number> {
  const count = (show: Show) => members.filter((member) => isShown(member, show)).length;
  return { all: members.length, free: count("free"), trouble: count("trouble") };
}

/** Nodes with all words of a search in their name, hardware, state or trainings. */
export function select(members: readonly Member[], text: string, show: Show): Member[] {
  const has = searched(text);
  return members.filter((member) => {
    if (!isShown(member, show)) return false;
    const trainings = member.trainings.map(id);
    return has([member.name, member.instanceType, hardware(member), ...member.troubles, ...trainings].join(" "));
  });
}

/** Whether groups begin closed: there are many nodes, and none of them was searched for. */
export function beginClosed(members: readonly Member[], text: string, show: Show): boolean {
  return members.length > FEW && !text && show === "all";
}

/** The lines of the list; `toggled` has the groups that somebody has opened or closed. */
export function items(members: readonly Member[], isClosed: boolean, toggled: ReadonlySet<string>): Item[] {
  const found = groups(members);
  if (found.length === 1 && !isClosed) return found[0]!.members.map((member) => ({ member }));
  return found.flatMap((group): Item[] => {
    const isOpen = isClosed === toggled.has(group.key);
    return [{ group }, ...(isOpen ? group.members.map((member) => ({ member })) : [])];
  });
}
