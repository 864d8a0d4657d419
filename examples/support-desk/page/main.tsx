import { useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Conversation } from './conversation.tsx';
import { Conversations } from './conversations.tsx';

function Page() {
  const [employee, setEmployee] = useState<string>();
  // Undefined is a new conversation; the key gives each its own state.
  const [{ key, ...open }, setOpen] = useState<{ sessionId?: string; key: number }>({ key: 0 });
  // Counts turns, to read the list of conversations again after each.
  const [turns, setTurns] = useState(0);
  const signIn = async (id: string): Promise<void> => {
    const body = JSON.stringify({ id });
    const response = await fetch('/sign-in', { method: 'POST', body });
    if (response.ok) setEmployee(id);
  };
  if (!employee) {
    return (
      <main>
        <h1>Support desk</h1>
        <p>Sign in as</p>
        {['ada', 'bob'].map((id) => (
          <button key={id} type="button" onClick={() => void signIn(id)}>
            {id}
          </button>
        ))}
      </main>
    );
  }
  const show = (sessionId?: string): void =>
    setOpen({ key: key + 1, ...(sessionId !== undefined && { sessionId }) });
  return (
    <main>
      <h1>Support desk</h1>
      <div className="desk">
        <Conversations turns={turns} onOpen={show} />
        <Conversation key={key} {...open} onTurn={() => setTurns((count) => count + 1)} />
      </div>
    </main>
  );
}

const root = document.getElementById('root');
if (root) createRoot(root).render(<Page />);
