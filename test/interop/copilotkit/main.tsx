import { createRoot } from 'react-dom/client';
import { Page } from './page.tsx';

const runtimeUrl = new URLSearchParams(location.search).get('runtime') ?? '';
createRoot(document.getElementById('root') ?? document.body).render(
  <Page runtimeUrl={runtimeUrl} />,
);
