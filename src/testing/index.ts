export { serveContractProcess } from './engine-contract/contract-process.ts';
export { type FakeClock, fakeClock } from './fake-clock.ts';
export {
  type ScriptedModel,
  type ScriptedReply,
  type ScriptStep,
  scriptedModel,
} from './scripted-model.ts';
