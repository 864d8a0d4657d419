import type { ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';

/** Answers to interrupted tool requests. */
export interface ResumeInput {
  readonly respond?: readonly ToolResponsePart[];
  readonly restart?: readonly ToolRequestPart[];
}
