import type { ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';

/** Answers to interrupted tool requests. */
export interface ResumeInput {
  /** Answers in place of the tools. */
  readonly respond?: readonly ToolResponsePart[];
  /** Requests whose tools run now. */
  readonly restart?: readonly ToolRequestPart[];
}
