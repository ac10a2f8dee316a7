// `headgate report recommendations`: prints the recommendation report as tables with bars, or as JSON.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { HeadgateError, type RecommendationsFilters } from '@headgate/client/client.ts';
import { reportGroupings } from '../analytics/analytics-orders.ts';
import { Failure } from '../failure.ts';
import { usagePeriod } from '../ledger/usage.ts';
import type { Call } from './call.ts';
import { connect, whyFailed } from './connect.ts';
import { type ExitCode, exitCodes, failed, misused, printJson } from './io.ts';
import { recommendationsText } from './recommendations-text.ts';
import { untilSignal } from './stop-signal.ts';

export async function reportRecommendations(call: Call): Promise<ExitCode> {
  const { io, isOn } = call;
  const filters = readFilters(call);
  if (filters instanceof Failure) return misused(io, filters);
  const server = await connect(call, 'report recommendations');
  if (server instanceof Failure) return misused(io, server);
  const reason = await server.whyNotServing();
  if (reason !== null) return failed(io, reason);
  return untilSignal(async (signal) => {
    try {
      const report = await server.client.recommendationsReport({
        ...filters,
        signal,
        onRetry: server.onRetry,
      });
      if (isOn('json')) return printJson(io, report);
      // Without a terminal there is no limit, so that no column is left out.
      const widthCharacters = io.outWidthCharacters ?? Number.POSITIVE_INFINITY;
      for (const line of recommendationsText(report, widthCharacters)) io.out(line);
      return exitCodes.done;
    } catch (error) {
      if (error instanceof HeadgateError) return failed(io, whyFailed(error, server.url));
      throw error;
    }
  });
}

/** Returns the filters as they were given. The server chooses the days that are not given. */
function readFilters({ io, option }: Call): RecommendationsFilters | Failure {
  const [from, to, word] = [option('from'), option('to'), option('by')];
  const period = usagePeriod(from, to, io.nowMs());
  if (period instanceof Failure) {
    return new Failure(`--${period.reason.replace('from and to', 'from and --to')}`);
  }
  const by = reportGroupings.find((known) => known === word);
  if (word !== undefined && by === undefined) {
    return new Failure(`--by must be one of ${reportGroupings.join(', ')}, not ${quote(word)}`);
  }
  return { from, to, by, holdout: option('holdout') };
}
