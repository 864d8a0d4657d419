import { isWaymarkError, WaymarkError } from '../error.ts';
import { toPointer } from './pointer.ts';

/** How deeply values may be nested; what walks over them is recursive and must not overflow the stack. */
export const maxJsonDepth = 512;

/** Whether an object is a plain one, of any realm: no class instance, Map, Date and the like. */
export function isPlainObject(value: object): value is Record<string, unknown> {
  const prototype: unknown = Object.getPrototypeOf(value);
  return (
    prototype === Object.prototype ||
    prototype === null ||
    Object.getPrototypeOf(prototype) === null
  );
}

/** The error for a value that JSON cannot say: it names the first place where that is so, and why. */
export function notJson(value: unknown, what: string): WaymarkError {
  const { path, reason } = locate(value, [], new Map()) ?? {
    path: '',
    reason: 'it changes while it is read, or is frozen with properties that are undefined',
  };
  const place = path === '' ? what : `${what} at ${path}`;
  return new WaymarkError('INVALID_ARGUMENT', `${place} is not JSON: ${reason}.`, {
    details: { path },
  });
}

type Refusal = { readonly path: string; readonly reason: string };

function locate(
  value: unknown,
  path: PropertyKey[],
  around: Map<object, string>,
): Refusal | undefined {
  const refuse = (reason: string): Refusal => ({ path: toPointer(path), reason });
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return undefined;
  if (typeof value === 'number')
    return Number.isFinite(value) ? undefined : refuse(`it is ${value}`);
  if (typeof value !== 'object')
    return refuse(`it is ${value === undefined ? 'undefined' : `a ${typeof value}`}`);

  const outer = around.get(value);
  if (outer !== undefined) return refuse(`it refers back to ${outer === '' ? 'the whole' : outer}`);
  if (isWaymarkError(value)) return undefined;
  if (!Array.isArray(value) && !isPlainObject(value)) return refuse(`it is ${instanceName(value)}`);
  if (path.length === maxJsonDepth)
    return refuse(`it is nested more than ${maxJsonDepth} levels deep`);

  around.set(value, toPointer(path));
  for (const [key, child] of Array.isArray(value) ? value.entries() : Object.entries(value)) {
    if (child === undefined && !Array.isArray(value)) continue;
    path.push(key);
    const refusal = locate(child, path, around);
    if (refusal) return refusal;
    path.pop();
  }
  around.delete(value);
  return undefined;
}

function instanceName(value: object): string {
  const type: unknown = value.constructor;
  const name = typeof type === 'function' && type.name !== '' ? type.name : 'a class';
  return `an instance of ${name}`;
}
