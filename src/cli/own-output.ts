import type { Terminal } from './terminal.ts';

type Output = Terminal['output'];

/** The standard output for a protocol alone: whatever else is printed there goes to the standard error, until it is released. */
export function ownOutput(output: Output): {
  readonly write: (bytes: string | Uint8Array) => Promise<void>;
  readonly release: () => void;
} {
  const { write } = output;
  output.write = process.stderr.write.bind(process.stderr);
  return {
    write: (bytes) =>
      new Promise((resolve, reject) => {
        const done = (error?: Error | null): void => (error ? reject(error) : resolve());
        (write as (bytes: string | Uint8Array, then: typeof done) => boolean).call(
          output,
          bytes,
          done,
        );
      }),
    release() {
      output.write = write;
    },
  };
}
