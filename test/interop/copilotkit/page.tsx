// #region page
import {
  CopilotChat,
  CopilotKitProvider,
  useAgent,
  useFrontendTool,
  useInterrupt,
} from '@copilotkit/react-core/v2';
import { z } from 'zod';

function Desk() {
  const { agent } = useAgent({ agentId: 'desk' });
  useFrontendTool({
    name: 'show_map',
    description: 'Shows a map on the page',
    parameters: z.object({ city: z.string() }),
    handler: async ({ city }) => {
      document.title = `Map of ${city}`; // runs in the browser
      return `Showed ${city}`;
    },
  });
  useInterrupt({
    agentId: 'desk',
    render: ({ interrupt, resolve }) => (
      <button type="button" onClick={() => resolve({ approved: true })}>
        {interrupt?.message}
      </button>
    ),
  });
  return (
    <>
      <output>{JSON.stringify(agent?.state)}</output>
      <CopilotChat agentId="desk" />
    </>
  );
}

export function Page({ runtimeUrl }: { readonly runtimeUrl: string }) {
  return (
    <CopilotKitProvider runtimeUrl={runtimeUrl}>
      <Desk />
    </CopilotKitProvider>
  );
}
// #endregion
