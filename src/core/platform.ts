import { hmac } from '@noble/hashes/hmac.js';
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import { WaymarkError } from './error.ts';

// The seam to Node. Everything else in the core runs anywhere; no module imports `node:*`, so that a browser
// bundle holds none of it.
type Builtins = {
  'node:crypto': typeof import('node:crypto');
  'node:async_hooks': typeof import('node:async_hooks');
  'node:module': typeof import('node:module');
  'node:fs/promises': typeof import('node:fs/promises');
};

function builtin<Name extends keyof Builtins>(name: Name): Builtins[Name] | undefined {
  return globalThis.process?.getBuiltinModule?.(name) as Builtins[Name] | undefined;
}

// Loaded when something is hashed: it takes a tenth of what importing the package takes. Runtimes without it, whose own digest
// is asynchronous, use the portable one, which is about a tenth as fast.
let loadedCrypto: Builtins['node:crypto'] | undefined;
function cryptoIfAny(): Builtins['node:crypto'] | undefined {
  loadedCrypto ??= builtin('node:crypto');
  return loadedCrypto;
}

/** SHA-256 of a text's UTF-8 bytes, in lower-case hex. */
export function sha256Hex(text: string): string {
  return cryptoIfAny()?.hash('sha256', text, 'hex') ?? bytesToHex(sha256(utf8ToBytes(text)));
}

/** SHA-256 of bytes that come in pieces. */
export function createSha256(): Sha256 {
  const hash = cryptoIfAny()?.createHash('sha256');
  if (hash !== undefined) {
    return { update: (piece) => void hash.update(piece), hex: () => hash.digest('hex') };
  }
  const portable = sha256.create();
  return {
    update: (piece) => void portable.update(piece),
    hex: () => bytesToHex(portable.digest()),
  };
}

/** HMAC-SHA256 of a text's UTF-8 bytes. */
export function hmacSha256(
  key: string | Uint8Array,
  text: string,
  encoding: 'hex' | 'base64' | 'base64url' = 'hex',
): string {
  const crypto = cryptoIfAny();
  if (crypto) return crypto.createHmac('sha256', key).update(text).digest(encoding);
  const secret = typeof key === 'string' ? utf8ToBytes(key) : key;
  return encodeBytes(hmac(sha256, secret, utf8ToBytes(text)), encoding);
}

/** Whether two texts are equal, in a time that does not tell where they differ. */
export function timingSafeEqual(a: string, b: string): boolean {
  const left = new TextEncoder().encode(a);
  const right = new TextEncoder().encode(b);
  if (left.length !== right.length) return false;
  const crypto = cryptoIfAny();
  if (crypto) return crypto.timingSafeEqual(left, right);
  let difference = 0;
  for (const [at, byte] of left.entries()) difference |= byte ^ (right[at] ?? 0);
  return difference === 0;
}

/** Fills an array with random bytes fit for secrets, and returns it. */
export function randomBytes(into: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return globalThis.crypto.getRandomValues(into);
}

let due: (() => void)[] = [];

/**
 * Calls a function after everything else that is due in this turn of the event loop: timers, network responses, signals. The
 * functions of one turn share one immediate; a streaming server calls this for each token of each stream.
 */
export function afterThisTurn(fn: () => void): void {
  if (isPerRequest) immediate(fn);
  else if (due.push(fn) === 1) scheduleDue();
}

/**
 * Whether timers end with the request that started them, and a request cannot resolve what another one awaits, as in Workers: what
 * requests share must not wait for one.
 */
export const isPerRequest: boolean = globalThis.navigator?.userAgent === 'Cloudflare-Workers';

// As they are when this is loaded: tests may replace them later, and nothing here waits for a moved clock.
const { setImmediate: immediate, setTimeout: timeout } = globalThis;
const scheduleDue: () => void =
  typeof immediate === 'function'
    ? () => void immediate(callDue)
    : // In browsers. It takes up to a few milliseconds.
      () => void timeout(callDue, 0);

function callDue(): void {
  const calls = due;
  due = [];
  callEach(calls);
}

/** Calls functions that do not know of each other. */
export function callEach(calls: readonly (() => void)[]): void {
  for (const call of calls) {
    try {
      call();
    } catch (error) {
      // Uncaught, as it would be without the others behind it.
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}

/** Resolves after everything else that is due in this turn of the event loop. */
export function letOthersRun(): Promise<void> {
  return new Promise((resolve) => afterThisTurn(resolve));
}

const maxBlockMs = 10;
let lastBreak = 0;

/**
 * Lets timers and the network run if this has not been called for 10 ms, else `undefined`. For work that may go through many
 * promises without ever waiting for the event loop.
 */
export function takeBreak(): Promise<void> | undefined {
  const now = performance.now();
  if (now - lastBreak < maxBlockMs) return undefined;
  lastBreak = now;
  return letOthersRun();
}

type GlobalHooks = Partial<Pick<Builtins['node:async_hooks'], 'AsyncLocalStorage'>>;

/** A value that follows a call through its awaits. */
interface AsyncContext<T> {
  run<R>(value: T, fn: () => R): R;
  get(): T | undefined;
}

/** A named value that is seen by everything called from `run`, through awaits. */
export interface ContextKey<T> {
  readonly name: string;
  /** Calls a function inside which `get` gives this value. */
  run<R>(value: T, fn: () => R): R;
  /** The value of the innermost `run` around the caller. */
  get(): T | undefined;
}

// All keys share one async context, whose value is a chain: a `run` costs the same however many keys there are.
interface Frame {
  readonly key: object;
  readonly value: unknown;
  readonly outer: Frame | undefined;
}

let frames: AsyncContext<Frame> | undefined;

/** A new context key; two keys are different also when they have the same name. */
export function createContextKey<T>(name: string): ContextKey<T> {
  frames ??= createAsyncContext();
  const context = frames;
  const key: ContextKey<T> = {
    name,
    run: (value, fn) => context.run({ key, value, outer: context.get() }, fn),
    get() {
      for (let frame = context.get(); frame; frame = frame.outer) {
        // Only `run` of this very key makes such a frame, with a T.
        if (frame.key === key) return frame.value as T;
      }
      return undefined;
    },
  };
  return key;
}

/** An async context; without AsyncLocalStorage its value is seen in the synchronous part of `fn` only. */
function createAsyncContext<T>(): AsyncContext<T> {
  // Edge runtimes have it as a global.
  const { AsyncLocalStorage } = builtin('node:async_hooks') ?? (globalThis as GlobalHooks);
  if (!AsyncLocalStorage) return createSyncContext();
  const storage = new AsyncLocalStorage<T>();
  return { run: (value, fn) => storage.run(value, fn), get: () => storage.getStore() };
}

/** Loads an optional package synchronously; `undefined` if it is not installed or this is not Node. */
export function requireOptional(name: string): unknown {
  const require = builtin('node:module')?.createRequire(import.meta.url);
  if (!require) return undefined;
  try {
    return require(name);
  } catch (error) {
    if (isMissing(error, name)) return undefined;
    throw error;
  }
}

/** A text file: its path below the directory it was looked for in, with `/` between folders. */
export interface TextFile {
  readonly path: string;
  readonly source: string;
}

/** Reads the files of a directory and its folders whose names end in a certain way, by path; NOT_FOUND without a directory. */
export async function readTextFiles(
  directory: string,
  ending: string,
): Promise<readonly TextFile[]> {
  const fs = builtin('node:fs/promises');
  if (!fs) throw new WaymarkError('UNIMPLEMENTED', 'Files can be read only in Node, Bun and Deno.');
  const paths = await fs.readdir(directory, { recursive: true }).catch((cause: unknown) => {
    throw new WaymarkError('NOT_FOUND', `There is no directory "${directory}" to read.`, { cause });
  });
  const wanted = paths.filter((path) => path.endsWith(ending)).sort();
  return Promise.all(
    wanted.map(async (path) => ({
      path: path.replaceAll('\\', '/'),
      source: await fs.readFile(`${directory}/${path}`, 'utf8'),
    })),
  );
}

function createSyncContext<T>(): AsyncContext<T> {
  let current: T | undefined;
  return {
    run(value, fn) {
      const before = current;
      current = value;
      try {
        return fn();
      } finally {
        current = before;
      }
    },
    get: () => current,
  };
}

function encodeBytes(bytes: Uint8Array, encoding: 'hex' | 'base64' | 'base64url'): string {
  if (encoding === 'hex') return bytesToHex(bytes);
  const base64 = btoa(String.fromCharCode(...bytes));
  if (encoding === 'base64') return base64;
  return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

// Only the package itself may be missing; a package that is there but broken should say so.
function isMissing(error: unknown, name: string): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'MODULE_NOT_FOUND' || error.code === 'ERR_MODULE_NOT_FOUND') &&
    error.message.includes(name)
  );
}

export interface Sha256 {
  update(piece: Uint8Array): void;
  /** The digest of all pieces, in lower-case hex. Ends it. */
  hex(): string;
}
