import { Branded } from '../private-field.ts';

/** The remembered hash of a frozen container. */
export interface HashNote {
  /** Its text, or `#` and the hash of a long one: its part of the hash of the value that holds it. */
  readonly token: string;
  /** Characters of its canonical JSON. */
  readonly length: number;
  /** The members of a wide container in groups, and the sorted keys of an object. */
  readonly groups?: readonly { readonly token: string; readonly length: number }[] | undefined;
  readonly keys?: readonly string[] | undefined;
}

/**
 * On objects that are JSON and frozen all through. With 200,000 messages in memory a WeakSet is 3 to 7 times slower and
 * makes a full collection take 10 times as long.
 */
class Mark extends Branded {
  #note: HashNote | string | undefined = undefined;
  #shape: object | undefined = undefined;

  static has(object: object): boolean {
    return #note in object;
  }

  static note(object: object): HashNote | string | undefined {
    return #note in object ? object.#note : undefined;
  }

  static setNote(object: object, note: HashNote | string): void {
    if (#note in object) object.#note = note;
  }

  static shape(object: object): object | undefined {
    return #shape in object ? object.#shape : undefined;
  }

  static setShape(object: object, shape: object): void {
    if (#shape in object) object.#shape = shape;
  }
}

/** Freezes and marks one object or array, whose content has been checked and frozen. */
export function markFrozen<T extends object>(value: T): T {
  // An object frozen by other code may refuse a new field; it is then checked again the next time.
  if (!Mark.has(value) && Object.isExtensible(value)) new Mark(value);
  return Object.freeze(value);
}

/** Whether an object was sealed here. */
export function isFrozenJson(value: object): boolean {
  return Mark.has(value);
}

/** The remembered hash of a sealed object, if it was computed before. */
export function hashNote(value: object): HashNote | undefined {
  const note = Mark.note(value);
  return typeof note === 'string' ? { token: note, length: note.length } : note;
}

/** Remembers the hash of a sealed object. */
export function setHashNote(value: object, note: HashNote): void {
  // Most are short, and the text says all.
  Mark.setNote(value, note.length === note.token.length && !note.groups ? note.token : note);
}

/** Whether a sealed object is known to be of a shape, where the shape is any object used as its key. */
export function hasShape(value: object, shape: object): boolean {
  return Mark.shape(value) === shape;
}

/** Remembers the shape of a sealed object. */
export function setShape(value: object, shape: object): void {
  Mark.setShape(value, shape);
}
