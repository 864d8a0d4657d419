export type { OpenedStore } from './store-contract/kit.ts';
export {
  type Capability,
  type StoreContractOptions,
  storeContract,
} from './store-contract/store-contract.ts';
