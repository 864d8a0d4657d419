/**
 * The base of a class that puts private fields on an object which exists already: outside code cannot set, see or copy
 * them, and they go with the object. A WeakMap would say the same, but costs far more for things that come in thousands.
 * An object that is frozen refuses them.
 */
export class Branded {
  constructor(object: object) {
    // biome-ignore lint/correctness/noConstructorReturn: a subclass then puts its private fields on the object it was given
    return object;
  }
}
