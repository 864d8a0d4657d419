import type { Router, Served } from '../served.ts';
export function mountReflection(_router: Router, _served: Served): void {}
