// What the server sends, see trainer/dashboard.

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
  nodes: number | null;
  created: string | null;
  ended: string | null;
  isSuspended: boolean;
  isDeleted: boolean;
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface TrainerStatus {
  currentStep?: number;
  totalSteps?: number;
  currentEpoch?: number;
  totalEpochs?: number;
  trainMetrics?: Record<string, string>;
  evalMetrics?: Record<string, string>;
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
  runtimeKind: string;
  conditions: Condition[];
  started: string | null;
  trainerStatus: TrainerStatus | null;
  steps: Step[];
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
  steps: number[];
  values: number[];
}

export interface MetricNews {
  isReset: boolean;
  series: Points[];
}

/** Why the server cannot follow the TrainJobs; "" once it can. */
export interface StreamProblem {
  text: string;
}

export interface Rights {
  suspend: boolean;
  delete: boolean;
}

export const ENDED = new Set(["Complete", "Failed"]);
