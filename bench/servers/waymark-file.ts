import { fileStore } from 'waymark/file';
import type { Listen } from './server.ts';
import { listenWith } from './waymark.ts';

export const listen: Listen = ({ directory, ...pace }) => listenWith(fileStore(directory), pace);
