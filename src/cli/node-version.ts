/** The supported versions of Node, as `engines` of package.json has them: the oldest minor version of each line. */
const oldestMinors: Readonly<Record<number, number>> = { 22: 20, 24: 7 };
const newestLine = 24;

/** The versions of Node that run this package, as a sentence names them. */
export const supportedNode = 'Node 22 (22.20 or later) or Node 24.7 or later';

/** Whether a version such as `24.7.0` is supported. */
export function isSupportedNode(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > newestLine || minor >= (oldestMinors[major] ?? Number.POSITIVE_INFINITY);
}
