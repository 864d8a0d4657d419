/** What the tests use of the platform's types, which the project does not install. */
declare module 'cloudflare:workers' {
  import type { ObjectStorage } from 'waymark/durable-object';

  export function waitUntil(promise: Promise<unknown>): void;

  export class DurableObject<Env = unknown> {
    protected readonly ctx: { readonly storage: ObjectStorage; abort(reason: string): void };
    protected readonly env: Env;
    fetch?(request: Request): Promise<Response>;
    alarm?(): Promise<void>;
  }
}
