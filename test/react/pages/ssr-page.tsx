import { hydrateRoot } from 'react-dom/client';
import { SessionView } from './ssr-view.tsx';

const { url, initial } = JSON.parse(decodeURIComponent(location.hash.slice(1)));
const root = document.getElementById('root');
if (root) hydrateRoot(root, <SessionView url={url} initial={initial} />);
