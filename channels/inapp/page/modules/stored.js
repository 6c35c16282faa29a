// What this browser keeps: unsent messages, drafts, what was read. Where storage is off or full, it lives with the page.

const memory = new Map();

export function load(name, otherwise) {
  if (memory.has(name)) return memory.get(name);
  try {
    const text = localStorage.getItem(`hudhud.${name}`);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

export function save(name, value) {
  try {
    localStorage.setItem(`hudhud.${name}`, JSON.stringify(value));
    memory.delete(name);
  } catch {
    memory.set(name, value);
  }
}
