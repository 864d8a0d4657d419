/**
 * The parts of messages, and functions that make and read messages.
 *
 * @module
 */

export {
  type Content,
  type MessagesTemplate,
  modelMessage,
  systemMessage,
  toolMessage,
  userMessage,
} from '../generate/template.ts';
export { closeToolRequests } from '../generate/tool/resume.ts';
export type {
  CustomPart,
  DataPart,
  MediaPart,
  Message,
  Part,
  ReasoningPart,
  ResourcePart,
  TextPart,
  ToolRequest,
  ToolRequestPart,
  ToolResponsePart,
} from '../protocol/message.ts';
export { openToolRequests, toolRequestsOf } from '../protocol/messages.ts';
export type { Resume } from '../protocol/turn.ts';
