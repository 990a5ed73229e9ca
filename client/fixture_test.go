package client_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
)

// These are a server's responses to the questions of the examples.
const (
	ofService = `{"at":1784980800000,"results":[
		{"entity":{"device_id":"d000001","user_id":"u000001"},"features":{
			"device_tx_7d":{"value":3,"status":"PRESENT"},"user_amount_1d":{"value":99.75,"status":"PRESENT"}}},
		{"entity":{"device_id":"d000002","user_id":"u000002"},"features":{
			"device_tx_7d":{"value":0,"status":"NOT_FOUND"},"user_amount_1d":{"value":0,"status":"NOT_FOUND"}}},
		{"entity":{"device_id":"d000003","user_id":"u000003"},"features":{
			"device_tx_7d":{"value":1,"status":"PRESENT"},"user_amount_1d":{"value":null,"status":"UNAVAILABLE"}}}]}`
	ofAmount = `{"at":1784980800000,"results":[{"entity":{"user_id":"u000001"},"features":{
		"user_amount_1d":{"value":112.25,"status":"PRESENT"}}}],
		"pending":[{"stream":"transaction","time":1784980800000}]}`
	ofMembers = `{"at":1784980800000,"results":[{"entity":{"user_id":"u000001"},"features":{
		"user_merchant_seen":{"capped":true,"members":[
			{"member":"m000001","value":true,"status":"PRESENT"},
			{"member":"m000009","value":false,"status":"PRESENT"},
			{"member":"m000010","value":null,"status":"PRESENT"}]}}}]}`
	ofUnknown = `{"error":{"code":"unknown_feature","message":"feature \"device_tx_8d\" does not exist",
		"feature":"device_tx_8d","nearest":"device_tx_7d"}}`
)

// answer responds to the questions of the examples.
func answer(w http.ResponseWriter, r *http.Request) {
	var question struct {
		Service  string
		Features []string
	}
	_ = json.NewDecoder(r.Body).Decode(&question)
	switch {
	case question.Service == "payment_risk":
		_, _ = io.WriteString(w, ofService)
	case question.Features[0] == "user_amount_1d":
		_, _ = io.WriteString(w, ofAmount)
	case question.Features[0] == "user_merchant_seen":
		_, _ = io.WriteString(w, ofMembers)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, ofUnknown)
	}
}

// startServer serves on a local address until the program ends.
func startServer() (address string) { return httptest.NewServer(http.HandlerFunc(answer)).URL }
