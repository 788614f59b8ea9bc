// What the server sends, see the package trainer_dashboard.

export interface Row {
  uid: string;
  namespace: string;
  name: string;
  state: string;
  message: string;
  progress: number | null;
  remaining: number | null;
  remainingText: string;
  runtime: string;
  runtimeKind: string;
  /** Null where the runtime says it. */
  nodes: number | null;
  /** GPUs and the like; null where the runtime says it. */
  devicesPerNode: number | null;
  owner: string;
  /** Only in the list. */
  metric?: Trend | null;
  /** Only in the list. */
  labels?: Record<string, string>;
  created: string | null;
  /** When the condition that explains its state became so. */
  since?: string | null;
  ended: string | null;
  isSuspended: boolean;
  isDeleted: boolean;
}

/** A metric, and the values that the dashboard has seen of it. */
export interface Trend {
  name: string;
  isEval: boolean;
  trend: number[];
}

/** A row together with what its runtime says. */
export interface Listed extends Row {
  gpus: number | null;
}

export const CLUSTER_WIDE = "ClusterTrainingRuntime";

export interface Runtime {
  name: string;
  /** Empty for one of the cluster. */
  namespace: string;
  kind: string;
  framework: string;
  support: string;
  nodes: number;
  image: string;
  /** GPUs and the like of each node. */
  devices: number;
  /** What its author says that it is for. */
  description: string;
  created: string | null;
}

interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface Checkpoint {
  step: number;
  time: string;
  path?: string;
}

export interface TrainerStatus {
  currentStep?: number;
  totalSteps?: number;
  currentEpoch?: number;
  totalEpochs?: number;
  trainMetrics?: Record<string, string>;
  evalMetrics?: Record<string, string>;
  /** The last complete one. */
  checkpoint?: Checkpoint;
  lastUpdatedTime?: string;
}

export interface Step {
  name: string;
  state?: string;
  progressPercentage?: number;
  estimatedRemainingTimeSummary?: string;
}

export interface Job extends Row {
  resourceVersion: string;
  /** Changes with the spec alone. */
  generation: number | null;
  conditions: Condition[];
  started: string | null;
  trainerStatus: TrainerStatus | null;
  /** What it means that no later checkpoint is complete, such as `85 steps would be lost now`; may be empty. */
  unsaved: string;
  /** How often all nodes have started again, by cause; "" if never. */
  restarts: string;
  /** How many nodes an elastic training may have. */
  bounds: { least: number; most: number } | null;
  steps: Step[];
  /** The sweep that it is a trial of. */
  trial: Membership | null;
  recipe: Recipe;
}

/** What a trial says of its sweep. */
export interface Membership {
  sweep: string;
  number: number;
  parameters: [name: string, value: string][];
  /** Why its sweep has stopped it; "" while it goes on. */
  pruned: string;
}

/** What a TrainJob itself says of what it runs; empty where its runtime does. */
export interface Recipe {
  image: string;
  command: string[];
  args: string[];
  /** Of the command line; a value is "" where the option has none. */
  parameters: [name: string, value: string][];
  /** Where nodes fetch the code from with git. */
  repository: string;
  revision: string;
  /** Whether the code was sent with the TrainJob. */
  isPacked: boolean;
  env: { name: string; value: string; origin: string }[];
  /** Of each node. */
  resources: Record<string, string>;
  processes: string;
  data: [title: "dataset" | "model", uri: string][];
}

/** A sweep in the list. */
export interface SweepRow {
  uid: string;
  namespace: string;
  name: string;
  state: string;
  message: string;
  progress: number | null;
  /** Null where nothing was counted. */
  counts: Record<"running" | "succeeded" | "failed" | "pruned", number> | null;
  numTrials: number;
  metric: string;
  direction: "Minimize" | "Maximize";
  best: { trainJob: string; number: number | null; value: string; parameters: [name: string, value: string][] } | null;
  algorithm: string;
  parameterCount: number;
  created: string | null;
  started: string | null;
  ended: string | null;
  isSuspended: boolean;
  isDeleted: boolean;
}

/** A parameter of a sweep, and the values that it can have. */
export interface SweepParameter {
  name: string;
  /** "" where it is none of these. */
  kind: "uniform" | "logUniform" | "categorical" | "";
  isInteger: boolean;
  low: number | null;
  high: number | null;
  choices: string[];
}

/** A sweep on its page, without its trials. */
export interface Sweep extends SweepRow {
  resourceVersion: string;
  /** How one value is made of a curve. */
  aggregate: "Last" | "Min" | "Max";
  settings: [name: string, value: string][];
  /** How hopeless trials are found; "" where none is stopped. */
  pruning: string;
  pruningSettings: [name: string, value: string][];
  parallelTrials: number;
  maxFailedTrials: number | null;
  parameters: SweepParameter[];
  conditions: Condition[];
}

export const TRIAL_STATES = ["Running", "Succeeded", "Failed", "Pruned"] as const;
export type TrialState = (typeof TRIAL_STATES)[number];

export interface Trial {
  number: number;
  /** That of its TrainJob. */
  name: string;
  /** "" where nothing of its TrainJob is left. */
  uid: string;
  /** Whether its TrainJob is on the cluster. */
  isThere: boolean;
  state: TrialState;
  /** The state of its TrainJob; "" without one. */
  phase: string;
  value: number | null;
  /** Digit by digit, as it was reported. */
  valueText: string;
  step: number | null;
  progress: number | null;
  /** In the order of those of the sweep. */
  parameters: (string | null)[];
  started: string | null;
  ended: string | null;
  message: string;
  points: [step: number, value: number | null][];
}

/** How much each parameter has to do with the value. */
export interface Importance {
  /** Shares of the variance, absolute correlations of ranks, or "" where nothing can be said. */
  method: "share" | "correlation" | "";
  /** Succeeded trials below which nothing is said. */
  least: number;
  of: Record<string, number>;
}

/** A training of the history. */
export interface Past {
  uid: string;
  namespace: string;
  name: string;
  /** The last one; of a training that was deleted before its end, that before the deletion. */
  state: string;
  reason: string;
  message: string;
  runtime: string;
  runtimeKind: string;
  /** Such as `generation 3`. */
  runtimeVersion: string;
  image: string;
  nodes: number | null;
  progress: number | null;
  owner: string;
  created: string | null;
  started: string | null;
  ended: string | null;
  /** When it was gone from the cluster; null while it is there. */
  deleted: string | null;
  /** When all but this row was forgotten; null while it is kept. */
  forgotten: string | null;
  /** How long it ran. */
  seconds: number | null;
  /** The sweep that it was a trial of. */
  trial: { sweep: string; sweepUid: string; number: number | null } | null;
  metric: { name: string; isEval: boolean; value: string } | null;
}

/** A page of the history. */
export interface PastList {
  trainings: Past[];
  /** What to ask for the next page with; "" if this is the last one. */
  next: string;
  /** Those that the history has trainings of, and that the user may see. */
  namespaces: string[];
  /** Why there are none, where nothing is recorded. */
  note: string;
}

export interface Node {
  uid: string;
  name: string;
  node: string;
  phase: string;
  host: string;
  restarts: number;
  requests: Record<string, string>;
  reason: string;
  logs: string[];
  created: string | null;
  image: string;
  /** When its first container did, however often it has restarted since; null before. */
  started: string | null;
  /** When the last run ended that a container has restarted after in its pod; null without a restart. */
  stopped: string | null;
  /** When that restart began to run; null before. */
  restarted: string | null;
}

export interface KubeEvent {
  uid: string;
  type: string;
  reason: string;
  message: string;
  object: string;
  count: number;
  last: string;
}

export interface Points {
  kind: "train" | "eval";
  name: string;
  times: number[];
  /** Epochs instead, where no sample has a step; -1 for none. */
  steps: number[];
  hasSteps: boolean;
  values: number[];
}

export interface MetricNews {
  /** Whether they take the place of all before. */
  isReset: boolean;
  /** Whether more of what there is now follows. */
  hasMore: boolean;
  series: Points[];
}

/** Why the server cannot follow the TrainJobs; "" once it can. */
export interface StreamProblem {
  text: string;
}

/** When the server has heard of the cluster last. */
export interface ClusterHeard extends Partial<StreamProblem> {
  seconds: number;
}

export interface Cause {
  reason: string;
  /** The object, such as `Pod demo-node-0-0-x7k2p`. */
  about: string;
  message: string;
  remedy: string;
  command: string;
  details: string[];
  /** Commands of which the remedy says when to run one. */
  commands: string[];
}

/** The answer of `trainer explain`. */
export interface Explanation {
  verdict: "running" | "succeeded" | "waiting" | "failed";
  causes: Cause[];
  notes: string[];
  unread: { what: string; why: string }[];
}

/**
 * A resource of nodes, or the devices of a driver that claims have. What is requested is null where the user may not
 * know it, and what is used where nobody measures it.
 */
export interface Kind {
  resource: string;
  /** Of a device, such as `NVIDIA-A100-SXM4-80GB`. */
  product: string;
  nodes: number;
  total: number;
  requested: number | null;
  used: number | null;
  /** On nodes that take pods. */
  free: number | null;
  largestFree: number | null;
}

export interface Capacity {
  kinds: Kind[];
  nodes: number;
  /** Cordoned, not ready or out of service. */
  closedNodes: number;
  members: Member[];
  /** Nodes that are not among them. */
  moreNodes: number;
  problems: string[];
  /** What the user may not know. */
  notes: string[];
}

/** A node of the cluster. */
export interface Member {
  name: string;
  instanceType: string;
  /** Words such as `Cordoned`, the worst first; none of a node that is ready. */
  troubles: string[];
  /** What the node says of its troubles, and since when. */
  why: string;
  since: string | null;
  devices: Pick<Kind, "resource" | "product" | "total" | "requested" | "free">[];
  cpu: Pick<Kind, "total" | "requested" | "used">;
  memory: Pick<Kind, "total" | "requested" | "used">;
  /** What JobSets have made it run; those with most devices first. */
  trainings: { namespace: string; name: string; pods: number; devices: number }[];
  moreTrainings: number;
  /** Null where the user may not know it. */
  otherPods: number | null;
}

/** A Workload of Kueue that waits. */
export interface Workload {
  uid: string;
  name: string;
  namespace: string;
  queue: string;
  /** In its queue, the first is 1; null of one that cannot start as it is. */
  place: number | null;
  owner: string;
  /** The name of the TrainJob that it may be of; "" where it is of something else. */
  training: string;
  gpus: number;
  created: string | null;
  message: string;
}

export interface Quota {
  flavor: string;
  resource: string;
  nominal: number;
  reserved: number;
  borrowed: number;
}

export interface ClusterQueue {
  name: string;
  cohort: string;
  /** Why it admits nothing; "" while it does. */
  stopped: string;
  waiting: number;
  admitted: number;
  quotas: Quota[];
}

/** A queue of a namespace. */
export interface LocalQueue {
  namespace: string;
  name: string;
  waiting: number;
  admitted: number;
  clusterQueue: string;
}

export interface Queues {
  isServed: boolean;
  problems: string[];
  /** Which namespaces are left out. */
  notes: string[];
  queues: LocalQueue[];
  /** Null where the user may not list them. */
  clusterQueues: ClusterQueue[] | null;
  moreClusterQueues: number;
  workloads: Workload[];
  /** Waiting ones that are not among them. */
  more: number;
}

export interface Rights {
  suspend: boolean;
  delete: boolean;
  /** Another TrainJob in the same namespace. */
  create: boolean;
}

export const ENDED = new Set(["Complete", "Failed"]);
