import { createRoot } from 'react-dom/client';

const root = document.getElementById('root');
if (root) {
  const view = createRoot(root);
  // React and the app are two scripts, so that compiling them takes two tasks.
  const { App } = await import('./shell/app.tsx');
  view.render(<App />);
}
