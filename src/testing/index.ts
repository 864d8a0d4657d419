export { serveContractProcess } from './engine-contract/contract-process.ts';
export { type FakeClock, fakeClock } from './fake-clock.ts';
export {
  type ScriptedAnswer,
  type ScriptedModel,
  type ScriptedModelOptions,
  type ScriptedReply,
  type ScriptedToolCall,
  type ScriptPatterns,
  type ScriptStep,
  scriptedModel,
} from './scripted-model.ts';
