// Whether a history server answers: it knows jobs that have ended, and has no processes to look into.

import { store } from "./store.js";

export const isHistory = store(false);
