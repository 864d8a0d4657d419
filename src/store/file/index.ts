export { fileStore } from './file-store.ts';
export type { FileStoreOptions } from './options.ts';
