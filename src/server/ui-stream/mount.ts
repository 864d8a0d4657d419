import type { Router, Served } from '../served.ts';
export function mountUiStream(_router: Router, _served: Served): void {}
