import type { LanguageModelLike } from '@langchain/core/language_models/base';
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite';

/** A chat model, such as ChatOpenAI. */
export declare const model: LanguageModelLike;
// #region task
const checkpointer = SqliteSaver.fromConnString('langgraph.db');

// #endregion

export { checkpointer };
