// `headgate changes`: prints the changes after a position, and follows them.

import { AbortedError, type ChangesPage, HeadgateError } from '@headgate/client/client.ts';
import { Failure } from '../failure.ts';
import type { Call } from './call.ts';
import { connect } from './connect.ts';
import { type ExitCode, exitCodes, failed, misused } from './io.ts';
import { uploadTypeOption } from './load/file-types.ts';
import { whyNotWritten, writeToOutput } from './output.ts';
import { readPosition, showPosition } from './position.ts';
import { untilSignal } from './stop-signal.ts';

export async function changes(call: Call): Promise<ExitCode> {
  const { io, option, isOn } = call;
  const after = readPosition('after', option('after')!);
  if (after instanceof Failure) return misused(io, after);
  const type = uploadTypeOption(option('type'));
  if (type instanceof Failure) return misused(io, type);
  const server = await connect(call, 'changes');
  if (server instanceof Failure) return misused(io, server);
  const reason = await server.whyNotServing();
  if (reason !== null) return failed(io, reason);

  const follow = isOn('follow');
  let position = after;
  return untilSignal(async (signal) => {
    const pages = server.client.changes({ after, type, follow, signal, onRetry: server.onRetry });
    try {
      await writeToOutput(
        linesOf(pages, (next) => {
          position = next;
        }),
      );
    } catch (error) {
      // A signal is the usual end of following.
      if (!(follow && error instanceof AbortedError)) {
        const isAborted = error instanceof AbortedError;
        // If the output could not be written, some of what was written may not have been read.
        if (position !== after && (isAborted || error instanceof HeadgateError))
          showPosition(io, 'after', position);
        return failed(io, isAborted ? 'it was interrupted' : whyNotWritten(error, server.url, null));
      }
    }
    showPosition(io, 'after', position);
    return exitCodes.done;
  });
}

async function* linesOf(
  pages: AsyncIterable<ChangesPage>,
  onWritten: (position: string) => void,
): AsyncGenerator<string, void> {
  for await (const { changes, next } of pages) {
    yield changes.map((change) => `${JSON.stringify(change)}\n`).join('');
    onWritten(next);
  }
}
