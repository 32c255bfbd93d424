package main

import (
	"encoding/json"
	"fmt"
)

// order is the body of an order-created message. Its ID is there and nowhere else: no property of the message has it.
type order struct {
	MessageID string `json:"messageId"`
	Type      string `json:"type"`
	Customer  string `json:"customer"`
	Currency  string `json:"currency"`
	Amount    any    `json:"amount"` // cents; the poison order has a word here
}

const orderType = "order-created"

func newOrder(number int) order {
	return order{
		MessageID: fmt.Sprintf("order-%02d", number), Type: orderType, Currency: "EUR",
		Customer: fmt.Sprintf("customer-%d", 100+number%7), Amount: 1000 + 50*number,
	}
}

func (o order) body() ([]byte, error) { return json.Marshal(o) }

// orderID reads the ID of a body; "" when it has none.
func orderID(body []byte) string {
	var o order
	_ = json.Unmarshal(body, &o)
	return o.MessageID
}
