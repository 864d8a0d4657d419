/** The first frame of an error's stack that is neither Waymark's nor the platform's, with the limit of frames that Node has. */
export async function firstFrame(call: () => unknown): Promise<string | undefined> {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = 10;
  try {
    await call();
  } catch (error) {
    const lines = String((error as Error).stack).split('\n');
    const outside = lines.filter((line) => /^\s+at /.test(line) && !isOurs(line));
    return outside[0] ?? lines.join('\n');
  } finally {
    Error.stackTraceLimit = limit;
  }
  throw new Error('It did not fail.');
}

function isOurs(line: string): boolean {
  return /\/src\/(?!.*\.test\.)|node:|node_modules|<anonymous>|Promise\.all/.test(line);
}
