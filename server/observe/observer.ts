// Bundles the server's log, metrics and traces. Metrics and traces are null if they are off.

import type { EndedRequest } from './ended-request.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import type { Traces } from './traces.ts';

export class Observer {
  readonly log: Log;
  readonly metrics: Metrics | null;
  readonly traces: Traces | null;
  /** False if neither log, metrics nor traces use reports of ended requests. No reports are made then. */
  readonly isWatching: boolean;
  requestsInProgress = 0;

  constructor(log: Log, traces: Traces | null, metrics: Metrics | null) {
    this.log = log;
    this.traces = traces;
    this.metrics = metrics;
    this.isWatching = log.hasRequests || traces !== null || metrics !== null;
  }

  requestEnded(ended: EndedRequest): void {
    this.metrics?.requestEnded(ended);
    this.log.request(ended);
  }
}
