import type { ToolApprovalResponse } from 'ai';
import { asked, desk, messages } from '../06-ask-for-approval/ai-sdk.ts';

// #region task
const approvals: ToolApprovalResponse[] = [];
for (const part of asked.content) {
  if (part.type === 'tool-approval-request') {
    const { approvalId } = part;
    approvals.push({ type: 'tool-approval-response', approvalId, approved: true });
  }
}
messages.push(...asked.responseMessages, { role: 'tool', content: approvals });
const answer = await desk.generate({ messages });
console.log(answer.text);
// #endregion
