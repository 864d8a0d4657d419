// The types of the platform that this project uses. `npx wrangler types` writes all of them, with those of your bindings.
declare module 'cloudflare:workers' {
  import type { ObjectStorage } from 'waymark/durable-object';

  export abstract class DurableObject {
    protected readonly ctx: { readonly storage: ObjectStorage };
    fetch?(request: Request): Promise<Response>;
    alarm?(): Promise<void>;
  }
}
