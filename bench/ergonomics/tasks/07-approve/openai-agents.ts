import { run } from '@openai/agents';
import { asked, desk } from '../06-ask-for-approval/openai-agents.ts';

// #region task
for (const request of asked.interruptions) asked.state.approve(request);
const answer = await run(desk, asked.state);
console.log(answer.finalOutput);
// #endregion
