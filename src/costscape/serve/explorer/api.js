// Requests to the service. A refusal is an ApiError with the service's sentence.

let token = null; // in memory only: gone when the page is closed or loaded again

export class ApiError extends Error {
  constructor(status, sentence) {
    super(sentence);
    this.status = status;
  }
}

export function useToken(value) {
  token = value;
}

export async function ask(path, { model, day, body, signal } = {}) {
  const query = new URLSearchParams();
  if (model !== undefined) query.set("model", model);
  if (day !== undefined) query.set("day", day);
  if (path === "decide") query.set("trial", "1"); // nobody carries these decisions out
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  const options = { headers, signal };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(`${path}${query.size ? `?${query}` : ""}`, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "The service does not answer. Is it running?");
  }
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new ApiError(answer.status, found.error ?? `The service answered ${answer.status}.`);
  return found;
}
