"""Asks a server the questions of a file, and prints each answer as the generated classes hold it."""

import json
import sys

import weir_api

url, questions = sys.argv[1:]
api = weir_api.DefaultApi(weir_api.ApiClient(weir_api.Configuration(host=url)))
answers = [api.query(weir_api.Question.from_json(line)) for line in open(questions)]
for answer in [*answers, api.catalogue(), api.ready()]:
    print(json.dumps(answer.to_dict(), default=str))
