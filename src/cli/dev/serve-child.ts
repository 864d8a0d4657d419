import { resolve } from 'node:path';
import { messageOf, toErrorBody } from '../../core/error.ts';
import type { ChildMessage, ParentMessage } from './child-message.ts';
import { onFileLoaded } from './loaded-files.ts';
import { type ServedFile, type ServeFileOptions, serveFile } from './serve-file.ts';

/** Serves a file under a supervisor, and reports to it. Ends when the supervisor asks for it, or is gone. */
export async function serveChild(options: ServeFileOptions): Promise<void> {
  const tell = (message: ChildMessage): void => void process.send?.(message);
  // Ctrl-C reaches the whole process group; the supervisor handles it.
  process.on('SIGINT', () => {});
  const told = Promise.withResolvers<void>();
  process.on('message', ({ type }: ParentMessage) => type === 'close' && told.resolve());
  process.on('disconnect', () => told.resolve());
  onFileLoaded(resolve(options.cwd, options.path), (path) => tell({ type: 'loaded', path }));
  let file: ServedFile | undefined;
  try {
    file = await serveFile(options);
    tell({ type: 'serving', served: file.served });
  } catch (error) {
    const stack = error instanceof Error ? causeOf(error).stack : undefined;
    const body = { ...toErrorBody(error), message: messageOf(error) };
    tell({ type: 'failed', error: body, ...(stack !== undefined && { stack }) });
  }
  await told.promise;
  await file?.close();
}

function causeOf(error: Error): Error {
  return error.cause instanceof Error ? error.cause : error;
}
