/** The steps of a JSON Pointer (RFC 6901), or `undefined` if it is not one. */
export function parsePointer(pointer: string): readonly string[] | undefined {
  if (pointer === '') return [];
  if (!pointer.startsWith('/')) return undefined;
  const steps = pointer.slice(1).split('/');
  if (!pointer.includes('~')) return steps;
  if (/~(?![01])/.test(pointer)) return undefined;
  return steps.map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

export function toPointer(steps: readonly PropertyKey[]): string {
  return steps.map((step) => `/${escapeStep(String(step))}`).join('');
}

export function escapeStep(step: string): string {
  return step.replaceAll('~', '~0').replaceAll('/', '~1');
}
