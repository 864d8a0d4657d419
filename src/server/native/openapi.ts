import type { Router } from '../served.ts';
export function mountOpenApi(_router: Router): void {}
