import { diff } from 'genkit/beta';
import { guide } from '../01-text-answer/genkit.ts';

const chat = guide.chat();
const { snapshotId = 'none' } = await chat.send('Two days in Lisbon');
const second = await chat.send('With children');
// #region task
const restored = await guide.loadChat({ snapshotId });
const other = await restored.send('On foot');
const from = await guide.getSnapshot(second.snapshotId!);
const to = await guide.getSnapshot(other.snapshotId!);
console.log(diff(from?.state, to?.state));
// #endregion
