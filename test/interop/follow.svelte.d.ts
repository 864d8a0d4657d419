export function follow<T>(read: () => T, seen: T[]): () => void;
