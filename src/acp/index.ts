export { loadSdk } from './sdk.ts';
