// The server's OpenAI API, as far as the page uses it.

/** What the server or the network refused. `status` is the HTTP status, 0 where there was no answer. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** GET `path`; the JSON body, whatever the status. Throws ApiError where there is none. */
export async function get(path, key = '') {
  const response = await reach(path, {headers: authorization(key)});
  try {
    return {status: response.status, body: await response.json()};
  } catch {
    return {status: response.status, body: {}};
  }
}

/** Sends a chat completion and yields its chunks as they come. Throws ApiError, or AbortError where `signal` says so. */
export async function* chat(request, key, signal) {
  const response = await reach('v1/chat/completions', {
    method: 'POST',
    headers: {'Content-Type': 'application/json', ...authorization(key)},
    body: JSON.stringify({...request, stream: true, stream_options: {include_usage: true}}),
    signal,
  });
  if (!response.ok) throw await refusal(response);
  let finished = false;
  for await (const data of events(response.body)) {
    if (data === '[DONE]') return;
    const chunk = parsed(data);
    if (chunk.error) throw new ApiError(chunk.error.message ?? 'the server broke off', response.status);
    finished ||= Boolean(chunk.choices?.[0]?.finish_reason);
    yield chunk;
  }
  if (!finished) throw new ApiError('The connection ended before the answer did.', 0);
}

function parsed(data) {
  try {
    return JSON.parse(data);
  } catch {
    throw new ApiError('The server sent a chunk that is not JSON.', 0);
  }
}

const authorization = (key) => (key ? {Authorization: `Bearer ${key}`} : {});

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError('The server cannot be reached.', 0);
  }
}

/** The error that an answer other than 200 stands for. */
async function refusal(response) {
  let message = '';
  try {
    message = (await response.json()).error.message;
  } catch { /* not the server's own body: a proxy's */ }
  const wait = response.headers.get('Retry-After');
  message ||= `The server answered ${response.status} ${response.statusText}`.trim();
  return new ApiError(wait ? `${message} (try again in ${wait} s)` : message, response.status);
}

/** The data of each server-sent event of a body. */
async function* events(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  let data = [];
  try {
    for (;;) {
      const {value, done} = await reader.read();
      const lines = (rest + (value ? decoder.decode(value, {stream: true}) : '')).split(/\r?\n/);
      rest = done ? '' : lines.pop();
      for (const line of lines) {
        if (line.startsWith('data:')) {
          data.push(line.slice(line[5] === ' ' ? 6 : 5));
        } else if (line === '' && data.length) {
          yield data.join('\n');
          data = [];
        }
      }
      if (done) return;
    }
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ApiError('The connection broke off.', 0);
  } finally {
    reader.cancel().catch(() => {});
  }
}
