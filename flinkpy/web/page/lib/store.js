// A value that several parts of the page show. It tells them when it changes.

import { useEffect, useState } from "../vendor/preact-htm.js";

export function store(value) {
  const listeners = new Set();
  return {
    get: () => value,
    set(next) {
      if (next === value) return;
      value = next;
      listeners.forEach(listener => listener(next));
    },
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export function useStore(held) {
  const [value, setValue] = useState(held.get());
  useEffect(() => {
    setValue(held.get());
    return held.listen(next => setValue(next));
  }, [held]);
  return value;
}
