// Asks a server the questions of a file, and prints each answer as the generated types hold it.

import { readFileSync } from 'node:fs';
import { AnswerToJSON, CatalogueToJSON, Configuration, DefaultApi, QuestionFromJSON, ReadinessToJSON } from './api/index.js';

const [url, questions] = process.argv.slice(2);
const api = new DefaultApi(new Configuration({ basePath: url }));
const print = (answer: unknown) => console.log(JSON.stringify(answer));
for (const line of readFileSync(questions, 'utf8').trimEnd().split('\n')) {
  print(AnswerToJSON(await api.query({ question: QuestionFromJSON(JSON.parse(line)) })));
}
print(CatalogueToJSON(await api.catalogue()));
print(ReadinessToJSON(await api.ready()));
