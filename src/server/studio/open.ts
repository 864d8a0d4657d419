import { addSpanSink } from '../../core/span-sink.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { HandlerOptions } from '../http/handler-options.ts';
import { readStudioFiles } from './files.ts';
import type { Studio } from './mount.ts';
import { createSpanRecorder } from './span-recorder.ts';

/** Reads the built studio and begins to listen for spans; `close` ends that. */
export async function openStudio(
  from: string | true,
  { clock, auth }: { readonly clock: Clock; readonly auth: HandlerOptions['auth'] },
): Promise<{ readonly studio: Studio; close(): void }> {
  const files = await readStudioFiles(from);
  if (auth) return { studio: { files }, close() {} };
  const spans = createSpanRecorder({ clock });
  return { studio: { files, spans }, close: addSpanSink(spans) };
}
